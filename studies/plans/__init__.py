"""How good the plans of a model are: asked in situations of Bramble, carried out there, measured by what came of it."""
