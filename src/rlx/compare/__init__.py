"""Is it better? Statistics on training seeds and the verdict drawn from them; pure: values in, values out."""
