"""Numbers from data, each with a certificate: duality gap, KKT violation, interval, identifiability."""
