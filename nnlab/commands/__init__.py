"""The commands of `nnlab`, a module each."""
