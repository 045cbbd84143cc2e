"""A language model on this machine as judge: the model file, llama.cpp's server, and the judges file that names it."""
