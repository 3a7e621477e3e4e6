"""Several improvement rounds on one config, each building on the head, with one claim at the end."""
