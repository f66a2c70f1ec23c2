"""What virtual machines share."""
