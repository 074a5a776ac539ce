"""Brings model files into the user's cache folder; tools/fetch_model.py is the command."""
