"""Private networks: per-example gradients of torch modules through the same curator, ledger and
guarantee as everything else. Imported by name: needs ``pip install hushfit[torch]``.

solvers/                 Solvers of networks
examples                 Small networks for audits
BookKeeping              Per-example gradients in one forward and one backward pass
WrittenOut               Per-example gradients by `torch.func.vmap`
ACTIVATIONS              Activations by their names
PrivateMLPClassifier     A multilayer perceptron as a classifier with a guarantee
PrivateMLPRegressor      A multilayer perceptron for a real target, with a guarantee
PrivateNeuralClassifier  Any network as a classifier with a guarantee
multilayer_perceptron    Linear layers with an activation between them
Callback                 A function that is called after each step
NetworkFit               Result of a fit of a network
Progress                 What a callback sees
Training                 How a network was fitted: its batches and its clipping norm
fit_network              Fit one network, after its arguments have been checked
quote_of                 Cost and noise of a fit of a network, from public numbers alone
fit_private              Fit a module to a dataset with a differential-privacy guarantee
FrozenModule             The outputs of a module with public weights, as features
NetworkGate              Index of the first step size whose decrease is large enough
NetworkGatedStep         A gradient, and a gate on the step along it
NetworkLossDrop          Sums of clipped decreases of the loss
NetworkSearch            A backtracking line search along a released gradient
NetworkGradient          Sum of clipped or normalised per-example gradients
load_cifar10             Images and labels of CIFAR-10 in local files
load_mnist               Images and labels of MNIST, or of a set in its format, in local files
read_idx                 Read an idx file of bytes
export_onnx              Write a fitted network as an ONNX graph, with its guarantee
load_network             Read a network
network_bytes            A network as the bytes of its file, and its hash
read_network             Read a network and the verified hash of its contents
save_network             Write a fitted network with its guarantee
ModuleLoss               A working copy of a module, and its loss
PHYSICAL_BATCH           Examples that pass through a module at once
Network                  The public half of a fit of a network
ArrayRecords             Records in arrays
DatasetRecords           Records of a map-style dataset
NetworkRows              Private records for networks
RecordShape              What is public about a record
engine_for               The fastest engine that is right for a module
"""

from hushfit.torch._engines import BookKeeping, WrittenOut
from hushfit.torch._estimators import PrivateNeuralClassifier
from hushfit.torch._fit import Callback, NetworkFit, Progress, Training, fit_network, quote_of
from hushfit.torch._fit_private import fit_private
from hushfit.torch._frozen_module import FrozenModule
from hushfit.torch._gate import NetworkGate, NetworkGatedStep, NetworkLossDrop, NetworkSearch
from hushfit.torch._gradient import NetworkGradient
from hushfit.torch._images import load_cifar10, load_mnist, read_idx
from hushfit.torch._model_file import (
    export_onnx,
    load_network,
    network_bytes,
    read_network,
    save_network,
)
from hushfit.torch._module_loss import ModuleLoss
from hushfit.torch._network import PHYSICAL_BATCH, Network
from hushfit.torch._perceptrons import (
    ACTIVATIONS,
    PrivateMLPClassifier,
    PrivateMLPRegressor,
    multilayer_perceptron,
)
from hushfit.torch._rows import ArrayRecords, DatasetRecords, NetworkRows
from hushfit.torch._validation import RecordShape, engine_for

__all__ = [
    "ACTIVATIONS",
    "PHYSICAL_BATCH",
    "ArrayRecords",
    "BookKeeping",
    "Callback",
    "DatasetRecords",
    "FrozenModule",
    "ModuleLoss",
    "Network",
    "NetworkFit",
    "NetworkGate",
    "NetworkGatedStep",
    "NetworkGradient",
    "NetworkLossDrop",
    "NetworkRows",
    "NetworkSearch",
    "PrivateMLPClassifier",
    "PrivateMLPRegressor",
    "PrivateNeuralClassifier",
    "Progress",
    "RecordShape",
    "Training",
    "WrittenOut",
    "engine_for",
    "export_onnx",
    "fit_network",
    "fit_private",
    "load_cifar10",
    "load_mnist",
    "load_network",
    "multilayer_perceptron",
    "network_bytes",
    "quote_of",
    "read_idx",
    "read_network",
    "save_network",
]
