"""What is so, whoever asks: hardware, versions, names that others give, in data files and what reads them."""
