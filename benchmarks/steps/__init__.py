"""Training steps of nnlab's engines and of every peer that is installed, timed in turns: `nnlab bench`."""
