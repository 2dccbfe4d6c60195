"""From a USD stage to a `SystemDescription`. The only package that imports pxr."""
