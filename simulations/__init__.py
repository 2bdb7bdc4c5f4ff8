"""Experiments that test the theory; torch is imported only inside the functions that train."""
