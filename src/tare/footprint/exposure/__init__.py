"""What a platform lets a tenant ask of the kernel."""
