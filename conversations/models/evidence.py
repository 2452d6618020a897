"""The Merkle tree over all heads, its checkpoints, and their witnesses. Rows are only ever added."""

from django.db import models


class TreeLeaf(models.Model):
    """One leaf: a chain had this hash at this number."""

    index = models.BigIntegerField(primary_key=True)
    chain = models.CharField(max_length=64, help_text="SHA-256 of the conversation's id; of the audit log: its own")
    seq = models.BigIntegerField()
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["chain", "seq"], name="tree_leaf_once")]


class TreeNode(models.Model):
    """The root of a full subtree of 256, 65,536 … leaves, so that a proof reads few of them."""

    pk = models.CompositePrimaryKey("level", "index")
    level = models.SmallIntegerField(help_text="its leaves are 2 ** level")
    index = models.BigIntegerField()
    hash = models.CharField(max_length=64)


class TreeChain(models.Model):
    """How far a conversation's chain is in the tree; used to find chains that have grown since."""

    conversation = models.BigIntegerField(primary_key=True, help_text="its row; 0: the audit log")
    seq = models.BigIntegerField()


class Checkpoint(models.Model):
    """A signed head of the tree."""

    size = models.BigIntegerField(primary_key=True)
    root = models.CharField(max_length=64)
    at = models.BigIntegerField(help_text="µs UTC")
    note = models.TextField(help_text="the signed note; the newest one has the signature of ML-DSA-44, too")


class Witnessed(models.Model):
    """The tree size that a witness has signed, and its last answer."""

    witness = models.CharField(max_length=200, primary_key=True, help_text="as it is configured, without secrets")
    size = models.BigIntegerField(default=0)
    at = models.BigIntegerField(default=0, help_text="µs UTC")
    signatures = models.TextField(default="", help_text="its lines of signatures, of those that sign")
    problem = models.CharField(max_length=500, default="", help_text="why the last try failed; empty: it did not")
