"""Remote admission: what has to agree before anything is let go. A backend judges, is asked, grants or refuses."""
