"""Remote admission: what has to agree before gates are lifted. Backends compose; each answers offers and releases."""
