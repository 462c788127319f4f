"""Code that simulated commands share. Imports no command."""
