"""From a trained model to its integer network, and that network in torch."""
