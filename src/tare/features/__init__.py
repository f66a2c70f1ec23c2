"""A folder a feature: its analysis, words, views and commands. `tare.extensions` finds the folders by themselves."""
