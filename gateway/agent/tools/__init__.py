"""What the model can do besides talking: one file per tool."""
