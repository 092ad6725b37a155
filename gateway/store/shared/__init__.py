"""What all stores share."""
