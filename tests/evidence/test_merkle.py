"""The tree of RFC 6962: the well-known vectors of Certificate Transparency, and proofs of all small trees."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.evidence import merkle
from tests.support import merkle_proofs

LEAVES = [
    bytes.fromhex(text)
    for text in (
        "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
    )
]  # fmt: skip
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
HASHES = [merkle.leaf_hash(leaf) for leaf in LEAVES]
# index, size, path; and old, size, proof: of Certificate Transparency's tests of their Merkle tree
INCLUSIONS = [
    (0, 1, []),
    (0, 8, ["96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"]),
    (5, 8, ["bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"]),
    (2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
    (1, 5, ["6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"]),
]  # fmt: skip
CONSISTENCIES = [
    (1, 1, []),
    (1, 8, ["96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"]),
    (6, 8, ["0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"]),
    (2, 5, ["5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"]),
]  # fmt: skip


def subtree_of(hashes):
    return lambda start, end: merkle.root_of(hashes[start:end])


def hexed(hashes):
    return [hash_.hex() for hash_ in hashes]


@pytest.mark.parametrize("size", range(9))
def test_roots_are_the_well_known_ones(size):
    assert merkle.root_of(HASHES[:size]).hex() == ROOTS[size]


@pytest.mark.parametrize(("index", "size", "path"), INCLUSIONS)
def test_paths_are_the_well_known_ones(index, size, path):
    assert hexed(merkle.inclusion(subtree_of(HASHES), index, size)) == path


@pytest.mark.parametrize(("old", "size", "proof"), CONSISTENCIES)
def test_consistency_proofs_are_the_well_known_ones(old, size, proof):
    assert hexed(merkle.consistency(subtree_of(HASHES), old, size)) == proof


@pytest.mark.parametrize("size", range(1, 34))
def test_every_proof_of_a_small_tree_holds_and_for_nothing_else(size):
    hashes = [merkle.leaf_hash(bytes([n])) for n in range(size)]
    tree, root = subtree_of(hashes), merkle.root_of(hashes)
    for index in range(size):
        path = merkle.inclusion(tree, index, size)
        assert merkle_proofs.root_by_inclusion(hashes[index], index, size, path) == root
        assert merkle_proofs.root_by_inclusion(b"\1" * 32, index, size, path) != root
        assert merkle_proofs.root_by_inclusion(hashes[index], index, size, [*path, root]) is None
        old, proof = index + 1, merkle.consistency(tree, index + 1, size)
        assert merkle_proofs.is_consistent(old, merkle.root_of(hashes[:old]), size, root, proof)
        assert not merkle_proofs.is_consistent(old, b"\1" * 32, size, root, proof)
        assert not merkle_proofs.is_consistent(old, merkle.root_of(hashes[:old]), size, b"\1" * 32, proof)


@settings(max_examples=40)
@given(st.integers(1, 300), st.data())
def test_a_flipped_bit_of_a_proof_is_refused(size, data):
    hashes = [merkle.leaf_hash(n.to_bytes(2, "big")) for n in range(size)]
    root, index = merkle.root_of(hashes), data.draw(st.integers(0, size - 1))
    path = merkle.inclusion(subtree_of(hashes), index, size)
    if path:
        at, bit = data.draw(st.integers(0, len(path) - 1)), data.draw(st.integers(0, 255))
        path[at] = (int.from_bytes(path[at], "big") ^ 1 << bit).to_bytes(32, "big")
        assert merkle_proofs.root_by_inclusion(hashes[index], index, size, path) != root
