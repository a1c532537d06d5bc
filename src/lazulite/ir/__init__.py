"""The one intermediate representation: types, operations, nodes, and what follows from them."""
