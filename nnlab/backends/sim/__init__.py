"""A simulated GPU: CuPy's behaviour with exact counts and modelled times, on any machine."""
