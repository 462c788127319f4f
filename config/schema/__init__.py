"""The types of the settings, and what follows from them."""
