//! Report documents and their renderers.
