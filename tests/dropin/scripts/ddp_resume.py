"""Save a checkpoint on rank 0, load it everywhere, and go on as if nothing had happened."""

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Waves(Dataset):
    def __init__(self, count=40):
        self.t = torch.linspace(0, 6, count, dtype=torch.float64)

    def __len__(self):
        return len(self.t)

    def __getitem__(self, i):
        t = self.t[i]
        return torch.stack([t.sin(), t.cos(), t / 6]), (2 * t).sin()


def network():
    # No bias before batch norm: its gradient is rounding noise, which Adam would blow up.
    return nn.Sequential(
        nn.Linear(3, 20, bias=False), nn.BatchNorm1d(20), nn.SiLU(), nn.Linear(20, 1)
    ).double()


class Trainer:
    def __init__(self, rank, world):
        self.rank = rank
        torch.manual_seed(17)
        net = network()
        self.model = DistributedDataParallel(net)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.02)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=1, gamma=0.8)
        self.sampler = DistributedSampler(Waves(), shuffle=True, seed=4)
        self.loader = DataLoader(Waves(), batch_size=10, sampler=self.sampler)
        self.epoch = 0

    def run_epoch(self):
        self.model.train()
        self.sampler.set_epoch(self.epoch)
        losses = []
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x).squeeze(1), y)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.scheduler.step()
        self.epoch += 1
        return losses

    def save(self, path):
        if self.rank == 0:
            snapshot = {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "epoch": self.epoch,
            }
            torch.save(snapshot, path)
        dist.barrier()  # nobody reads what is not written

    def load(self, path):
        snapshot = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(snapshot["model"])
        self.optimizer.load_state_dict(snapshot["optimizer"])
        self.scheduler.load_state_dict(snapshot["scheduler"])
        self.epoch = snapshot["epoch"]


def show(rank, title, losses, trainer):
    if rank == 0:
        rate = trainer.scheduler.get_last_lr()[0]
        print(title, " ".join(f"{x:.9f}" for x in losses), f"next lr {rate:.6f}")


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    shared = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(shared, src=0)
    path = Path(shared[0]) / "snapshot.pt"

    straight = Trainer(rank, world)
    for _ in range(2):
        show(rank, "epoch", straight.run_epoch(), straight)
    straight.save(path)
    expected = straight.run_epoch()
    show(rank, "straight on", expected, straight)

    resumed = Trainer(rank, world)
    resumed.load(path)
    again = resumed.run_epoch()
    show(rank, "resumed", again, resumed)
    flags = [None] * world
    dist.all_gather_object(flags, again == expected)
    if rank == 0:
        print("the same losses on every rank:", flags)
        state = torch.load(path, weights_only=True)["model"]
        print(list(state))
        consume_prefix_in_state_dict_if_present(state, "module.")
        bare = network()
        print(bare.load_state_dict(state))
        bare.eval()
        with torch.no_grad():
            x = torch.stack([Waves()[i][0] for i in (0, 13, 39)])
            print(" ".join(f"{v:.8f}" for v in bare(x).flatten().tolist()))
        print("batches seen by batch norm:", bare[1].num_batches_tracked.item())
        os.remove(path)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
