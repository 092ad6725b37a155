"""What packages of other people may build on, beside the ports themselves."""
