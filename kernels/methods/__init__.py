"""The kernels of the papers' methods: a few sources, put together by axes."""
