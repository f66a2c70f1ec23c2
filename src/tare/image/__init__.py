"""The image: one Debian root filesystem, built from the project's recipe, that every platform runs."""
