"""The tools of the model, one file each."""
