"""The kinds of targets of an audit; each file creates the setup (Python source that defines ``grade``) of one kind."""
