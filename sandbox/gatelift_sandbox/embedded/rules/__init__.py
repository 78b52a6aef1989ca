"""What the API server does to each kind beyond storing it: defaults, preparation, validation, deletion. All pure."""
