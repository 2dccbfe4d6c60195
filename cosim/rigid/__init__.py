"""The rigid-body core: from a model to a component, on Bullet."""
