"""Programs of several workers, and backward passes through all of them."""
