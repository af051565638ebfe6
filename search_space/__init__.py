"""What can be built: decoupled graph neural network designs, and the operators they are made of."""
