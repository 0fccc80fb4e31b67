#!/bin/sh
# Made by python -m tools.results; $DATA/NAME holds the dataset NAME.
set -e
python -m train --config cifar100-resnet20-t2-sam --set train.seed=1 --data $DATA/cifar100 --out runs/cifar100-t2-sam-seed1
python -m train --config cifar100-resnet20-t2-sam --data $DATA/cifar100 --out runs/cifar100-t2-sam
python -m train --config fsdd --data $DATA/fsdd --out runs/fsdd-seed0
python -m train --config fsdd --set train.seed=1 --data $DATA/fsdd --out runs/fsdd-seed1
python -m train --config fsdd --set train.seed=2 --data $DATA/fsdd --out runs/fsdd-seed2
python -m train --config cifar10-resnet20-n10 --set train.epochs=100 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/n10
python -m train --config cifar10-resnet20-n2 --set train.epochs=100 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/n2-again
python -m train --config cifar10-resnet20-n2 --set train.epochs=100 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/n2
python -m train --config cifar10-resnet20-n20 --set train.epochs=100 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/n20
python -m train --config cifar10-resnet20-t2 --set train.epochs=100 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/n5
python -m train --config nmnist-stream --data $DATA/nmnist --out runs/nmnist-stream-seed0
python -m train --config nmnist-stream --set train.seed=1 --data $DATA/nmnist --out runs/nmnist-stream-seed1
python -m train --config nmnist-stream --set train.seed=2 --data $DATA/nmnist --out runs/nmnist-stream-seed2
python -m train --config nmnist-t10 --data $DATA/nmnist --out runs/nmnist-t10-seed0
python -m train --config nmnist-t10 --set train.seed=1 --data $DATA/nmnist --out runs/nmnist-t10-seed1
python -m train --config nmnist-t10 --set train.seed=2 --data $DATA/nmnist --out runs/nmnist-t10-seed2
python -m train --config cifar10-onchip-float --data $DATA/cifar10 --out runs/onchip-float
python -m train --config cifar10-small-float --data $DATA/cifar10 --out runs/small-220-float
python -m train --config cifar10-small-float --set train.epochs=110 --set train.sam_epochs=30 --data $DATA/cifar10 --out runs/small-float
python -m train --config cifar10-resnet20-t2-sam --set train.seed=1 --data $DATA/cifar10 --out runs/t2-sam-seed1
python -m train --config cifar10-resnet20-t2-sam --data $DATA/cifar10 --out runs/t2-sam
python -m train --config cifar10-resnet20-t2-fast --set train.refine_epochs=20 --set train.seed=1 --data $DATA/cifar10 --out runs/t2-seed1-mild
python -m train --config cifar10-resnet20-t2-fast --set train.seed=1 --data $DATA/cifar10 --out runs/t2-seed1
python -m train --config cifar10-resnet20-t2-fast --set train.ema=0.999 --data $DATA/cifar10 --out runs/t2
python -m train --config cifar10-resnet20-v3 --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/v3-step025-60
python -m train --config cifar10-resnet20-4bit --set train.epochs=20 --set train.warmup_epochs=1.0 --set train.sam_epochs=8 --set train.seed=1 --set 'train.layer_bits={ "blocks.[678].*" = 2 }' --set train.init=cifar10-resnet20-4bit --data $DATA/cifar10 --out runs/mixed-2bit-seed1
python -m train --config cifar10-resnet20-4bit-sparse --set train.activity_ramp=1 --set 'train.layer_bits={ "blocks.[678].*" = 2 }' --set train.init=cifar10-resnet20-4bit-sparse --data $DATA/cifar10 --out runs/mixed-2bit-sparse-long
python -m train --config cifar10-resnet20-4bit --set train.epochs=20 --set train.warmup_epochs=1.0 --set train.sam_epochs=8 --set 'train.layer_bits={ "blocks.[678].*" = 2 }' --set train.init=cifar10-resnet20-4bit --data $DATA/cifar10 --out runs/mixed-2bit
python -m train --config cifar10-resnet20-4bit --set train.epochs=20 --set train.warmup_epochs=1.0 --set train.sam_epochs=8 --set train.seed=1 --set 'train.layer_bits={ "blocks.[678].*" = 3 }' --set train.init=cifar10-resnet20-4bit --data $DATA/cifar10 --out runs/mixed-3bit-seed1
python -m train --config cifar10-resnet20-4bit-sparse --set train.activity_ramp=1 --set 'train.layer_bits={ "blocks.[678].*" = 3 }' --set train.init=cifar10-resnet20-4bit-sparse --data $DATA/cifar10 --out runs/mixed-3bit-sparse-long
python -m train --config cifar10-resnet20-4bit-sparse --set train.epochs=20 --set train.warmup_epochs=1.0 --set train.sam_epochs=8 --set train.activity_ramp=1 --set 'train.layer_bits={ "blocks.[678].*" = 3 }' --set train.init=cifar10-resnet20-4bit-sparse --data $DATA/cifar10 --out runs/mixed-3bit-sparse
python -m train --config cifar10-resnet20-4bit --set train.epochs=20 --set train.warmup_epochs=1.0 --set train.sam_epochs=8 --set 'train.layer_bits={ "blocks.[678].*" = 3 }' --set train.init=cifar10-resnet20-4bit --data $DATA/cifar10 --out runs/mixed-3bit
python -m train --config cifar10-onchip --set train.init=runs/onchip-float --data $DATA/cifar10 --out runs/onchip-0.1
python -m train --config cifar10-onchip --set train.epochs=220 --set train.sam_epochs=100 --set train.activity=0.15 --set train.init=cifar10-onchip --data $DATA/cifar10 --out runs/onchip-0.15
python -m train --config cifar10-onchip --set train.epochs=220 --set train.sam_epochs=100 --set train.activity=0.2 --set train.init=cifar10-onchip --data $DATA/cifar10 --out runs/onchip-0.2-long
python -m train --config cifar10-onchip --set train.epochs=40 --set train.lr=0.02 --set train.sam_epochs=40 --set train.activity=0.2 --set train.activity_ramp=10 --set train.init=runs/onchip-float --data $DATA/cifar10 --out runs/onchip-0.2
python -m train --config cifar10-small --set train.init=runs/small-220-float --data $DATA/cifar10 --out runs/small-220
python -m train --config cifar10-small --set train.epochs=75 --set train.lr=0.05 --set train.sam_epochs=12 --set train.init=runs/small-float --data $DATA/cifar10 --out runs/small-long
python -m train --config cifar10-small --set train.epochs=25 --set train.sam_epochs=25 --set train.init=runs/small-float --data $DATA/cifar10 --out runs/small
python -m train --config cifar10-resnet20-sparse --set train.activity=0.05 --set train.init=cifar10-resnet20 --data $DATA/cifar10 --out runs/sparse-0.05
python -m train --config cifar10-resnet20-sparse --set train.init=cifar10-resnet20 --data $DATA/cifar10 --out runs/sparse-0.1
python -m train --config cifar10-resnet20-sparse --set train.activity=0.2 --set train.init=cifar10-resnet20 --data $DATA/cifar10 --out runs/sparse-0.2
python -m train --config cifar10-resnet20-sparse --set train.activity=0.4 --set train.init=cifar10-resnet20 --data $DATA/cifar10 --out runs/sparse-0.4
python -m train --config cifar10-resnet20-4bit --set train.activity=0.12 --set train.activity_ramp=8 --set train.init=cifar10-resnet20-4bit --data $DATA/cifar10 --out runs/sparse-4bit-0.12
python -m train --config cifar10-resnet20-4bit --set train.epochs=36 --set train.sam_epochs=14 --set train.activity=0.15 --set train.activity_ramp=8 --set train.init=cifar10-resnet20-4bit --data $DATA/cifar10 --out runs/sparse-4bit-0.15
python -m train --config cifar10-resnet20-4bit --set train.epochs=30 --set train.sam_epochs=10 --set train.activity=0.3 --set train.activity_ramp=8 --set train.init=cifar10-resnet20-4bit --data $DATA/cifar10 --out runs/sparse-4bit-0.3
python -m train --config cifar10-resnet20-4bit-sparse --set train.epochs=60 --set train.sam_epochs=35 --set train.activity=0.25 --set 'train.activity_layers=["blocks.0", "blocks.1", "blocks.2", "blocks.3", "blocks.4", "blocks.5"]' --set train.init=cifar10-resnet20-4bit-sparse --data $DATA/cifar10 --out runs/sparse-4bit-front-0.25
python -m train --config cifar10-resnet20-t2-fast --set neuron.timesteps=1 --set train.epochs=50 --set train.lr=0.02 --set train.warmup_epochs=1.0 --set train.init=runs/t2-sam --data $DATA/cifar10 --out runs/t1-sam
python -m train --config cifar10-resnet20-t2-fast --set neuron.timesteps=1 --set train.epochs=50 --set train.lr=0.02 --set train.warmup_epochs=1.0 --set train.ema=0.999 --set train.init=runs/t2 --data $DATA/cifar10 --out runs/t1
python -m train --config cifar10-resnet20-4bit --set train.init=cifar10-resnet20 --data $DATA/cifar10 --out runs/t2-4bit-sam
python -m train --config cifar10-resnet20-t2-fast --set train.epochs=60 --set train.lr=0.01 --set train.warmup_epochs=1.0 --set train.ema=0.999 --set train.weight_bits=4 --set train.fuse=false --set train.init=runs/t2 --data $DATA/cifar10 --out runs/t2-4bit
python -m train --config cifar10-resnet20-t2 --set train.epochs=60 --set train.batch=256 --set train.lr=0.01 --set train.warmup_epochs=2.0 --set train.ema=0.999 --set train.compile=reduce-overhead --set train.fuse=true --set train.init=cifar10-resnet20 --data $DATA/cifar10 --out runs/t2-60more
python -m train --config cifar10-resnet20-t4 --set train.epochs=60 --set train.batch=256 --set train.lr=0.01 --set train.warmup_epochs=2.0 --set train.ema=0.999 --set train.compile=reduce-overhead --set train.fuse=true --set train.init=cifar10-resnet20 --data $DATA/cifar10 --out runs/t4
python -m tools.results docs/results/runs --collect runs/cifar100-t2-sam-seed1
python -m train.export runs/cifar100-t2-sam-seed1 --out cifar100-t2-sam-seed1.lbq
python -m train.measure cifar100-t2-sam-seed1.lbq --data $DATA/cifar100 --run runs/cifar100-t2-sam-seed1 --compare-golden 50 --out docs/results/measured/cifar100-t2-sam-seed1.json
python -m tools.results docs/results/runs --collect runs/cifar100-t2-sam
python -m train.export runs/cifar100-t2-sam --out cifar100-t2-sam.lbq
python -m train.measure cifar100-t2-sam.lbq --data $DATA/cifar100 --run runs/cifar100-t2-sam --compare-golden 50 --out docs/results/measured/cifar100-t2-sam.json
python -m tools.results docs/results/runs --collect runs/fsdd-seed0
python -m train.export runs/fsdd-seed0 --out fsdd-seed0.lbq
python -m train.measure fsdd-seed0.lbq --data $DATA/fsdd --run runs/fsdd-seed0 --compare-golden 50 --out docs/results/measured/fsdd-seed0.json
python -m tools.results docs/results/runs --collect runs/fsdd-seed1
python -m train.export runs/fsdd-seed1 --out fsdd-seed1.lbq
python -m train.measure fsdd-seed1.lbq --data $DATA/fsdd --run runs/fsdd-seed1 --compare-golden 50 --out docs/results/measured/fsdd-seed1.json
python -m tools.results docs/results/runs --collect runs/fsdd-seed2
python -m train.export runs/fsdd-seed2 --out fsdd-seed2.lbq
python -m train.measure fsdd-seed2.lbq --data $DATA/fsdd --run runs/fsdd-seed2 --compare-golden 50 --out docs/results/measured/fsdd-seed2.json
python -m tools.results docs/results/runs --collect runs/n10
python -m train.export runs/n10 --out n10.lbq
python -m train.measure n10.lbq --data $DATA/cifar10 --run runs/n10 --compare-golden 50 --out docs/results/measured/n10.json
python -m tools.results docs/results/runs --collect runs/n2-again
python -m train.export runs/n2-again --out n2-again.lbq
python -m train.measure n2-again.lbq --data $DATA/cifar10 --run runs/n2-again --compare-golden 50 --out docs/results/measured/n2-again.json
python -m tools.results docs/results/runs --collect runs/n2
python -m tools.results docs/results/runs --collect runs/n20
python -m train.export runs/n20 --out n20.lbq
python -m train.measure n20.lbq --data $DATA/cifar10 --run runs/n20 --compare-golden 50 --out docs/results/measured/n20.json
python -m tools.results docs/results/runs --collect runs/n5
python -m train.export runs/n5 --out n5.lbq
python -m train.measure n5.lbq --data $DATA/cifar10 --run runs/n5 --compare-golden 50 --out docs/results/measured/n5.json
python -m tools.results docs/results/runs --collect runs/nmnist-stream-seed0
python -m train.export runs/nmnist-stream-seed0 --out nmnist-stream-seed0.lbq
python -m train.measure nmnist-stream-seed0.lbq --data $DATA/nmnist --run runs/nmnist-stream-seed0 --compare-golden 50 --out docs/results/measured/nmnist-stream-seed0.json
python -m tools.results docs/results/runs --collect runs/nmnist-stream-seed1
python -m train.export runs/nmnist-stream-seed1 --out nmnist-stream-seed1.lbq
python -m train.measure nmnist-stream-seed1.lbq --data $DATA/nmnist --run runs/nmnist-stream-seed1 --compare-golden 50 --out docs/results/measured/nmnist-stream-seed1.json
python -m tools.results docs/results/runs --collect runs/nmnist-stream-seed2
python -m train.export runs/nmnist-stream-seed2 --out nmnist-stream-seed2.lbq
python -m train.measure nmnist-stream-seed2.lbq --data $DATA/nmnist --run runs/nmnist-stream-seed2 --compare-golden 50 --out docs/results/measured/nmnist-stream-seed2.json
python -m tools.results docs/results/runs --collect runs/nmnist-t10-seed0
python -m train.export runs/nmnist-t10-seed0 --out nmnist-t10-seed0.lbq
python -m train.measure nmnist-t10-seed0.lbq --data $DATA/nmnist --run runs/nmnist-t10-seed0 --compare-golden 50 --out docs/results/measured/nmnist-t10-seed0.json
python -m tools.results docs/results/runs --collect runs/nmnist-t10-seed1
python -m train.export runs/nmnist-t10-seed1 --out nmnist-t10-seed1.lbq
python -m train.measure nmnist-t10-seed1.lbq --data $DATA/nmnist --run runs/nmnist-t10-seed1 --compare-golden 50 --out docs/results/measured/nmnist-t10-seed1.json
python -m tools.results docs/results/runs --collect runs/nmnist-t10-seed2
python -m train.export runs/nmnist-t10-seed2 --out nmnist-t10-seed2.lbq
python -m train.measure nmnist-t10-seed2.lbq --data $DATA/nmnist --run runs/nmnist-t10-seed2 --compare-golden 50 --out docs/results/measured/nmnist-t10-seed2.json
python -m tools.results docs/results/runs --collect runs/onchip-float
python -m tools.results docs/results/runs --collect runs/small-220-float
python -m tools.results docs/results/runs --collect runs/small-float
python -m tools.results docs/results/runs --collect runs/t2-sam-seed1
python -m train.export runs/t2-sam-seed1 --out t2-sam-seed1.lbq
python -m train.measure t2-sam-seed1.lbq --data $DATA/cifar10 --run runs/t2-sam-seed1 --compare-golden 50 --out docs/results/measured/t2-sam-seed1.json
python -m tools.results docs/results/runs --collect runs/t2-sam
python -m train.export runs/t2-sam --out t2-sam.lbq
python -m train.measure t2-sam.lbq --data $DATA/cifar10 --run runs/t2-sam --compare-golden 50 --out docs/results/measured/t2-sam.json
python -m tools.results docs/results/runs --collect runs/t2-seed1-mild
python -m train.export runs/t2-seed1-mild --out t2-seed1-mild.lbq
python -m train.measure t2-seed1-mild.lbq --data $DATA/cifar10 --run runs/t2-seed1-mild --compare-golden 50 --out docs/results/measured/t2-seed1-mild.json
python -m tools.results docs/results/runs --collect runs/t2-seed1
python -m train.export runs/t2-seed1 --out t2-seed1.lbq
python -m train.measure t2-seed1.lbq --data $DATA/cifar10 --run runs/t2-seed1 --compare-golden 50 --out docs/results/measured/t2-seed1.json
python -m tools.results docs/results/runs --collect runs/t2
python -m train.export runs/t2 --out t2.lbq
python -m train.measure t2.lbq --data $DATA/cifar10 --run runs/t2 --compare-golden 50 --out docs/results/measured/t2.json
python -m tools.results docs/results/runs --collect runs/v3-step025-60
python -m tools.results docs/results/runs --collect runs/mixed-2bit-seed1
python -m train.export runs/mixed-2bit-seed1 --out mixed-2bit-seed1.lbq
python -m train.measure mixed-2bit-seed1.lbq --data $DATA/cifar10 --run runs/mixed-2bit-seed1 --compare-golden 50 --out docs/results/measured/mixed-2bit-seed1.json
python -m tools.results docs/results/runs --collect runs/mixed-2bit-sparse-long
python -m train.export runs/mixed-2bit-sparse-long --out mixed-2bit-sparse-long.lbq
python -m train.measure mixed-2bit-sparse-long.lbq --data $DATA/cifar10 --run runs/mixed-2bit-sparse-long --compare-golden 50 --out docs/results/measured/mixed-2bit-sparse-long.json
python -m tools.results docs/results/runs --collect runs/mixed-2bit
python -m train.export runs/mixed-2bit --out mixed-2bit.lbq
python -m train.measure mixed-2bit.lbq --data $DATA/cifar10 --run runs/mixed-2bit --compare-golden 50 --out docs/results/measured/mixed-2bit.json
python -m tools.results docs/results/runs --collect runs/mixed-3bit-seed1
python -m train.export runs/mixed-3bit-seed1 --out mixed-3bit-seed1.lbq
python -m train.measure mixed-3bit-seed1.lbq --data $DATA/cifar10 --run runs/mixed-3bit-seed1 --compare-golden 50 --out docs/results/measured/mixed-3bit-seed1.json
python -m tools.results docs/results/runs --collect runs/mixed-3bit-sparse-long
python -m train.export runs/mixed-3bit-sparse-long --out mixed-3bit-sparse-long.lbq
python -m train.measure mixed-3bit-sparse-long.lbq --data $DATA/cifar10 --run runs/mixed-3bit-sparse-long --compare-golden 50 --out docs/results/measured/mixed-3bit-sparse-long.json
python -m tools.results docs/results/runs --collect runs/mixed-3bit-sparse
python -m train.export runs/mixed-3bit-sparse --out mixed-3bit-sparse.lbq
python -m train.measure mixed-3bit-sparse.lbq --data $DATA/cifar10 --run runs/mixed-3bit-sparse --compare-golden 50 --out docs/results/measured/mixed-3bit-sparse.json
python -m tools.results docs/results/runs --collect runs/mixed-3bit
python -m train.export runs/mixed-3bit --out mixed-3bit.lbq
python -m train.measure mixed-3bit.lbq --data $DATA/cifar10 --run runs/mixed-3bit --compare-golden 50 --out docs/results/measured/mixed-3bit.json
python -m tools.results docs/results/runs --collect runs/onchip-0.1
python -m train.export runs/onchip-0.1 --out onchip-0.1.lbq
python -m train.measure onchip-0.1.lbq --data $DATA/cifar10 --run runs/onchip-0.1 --compare-golden 50 --out docs/results/measured/onchip-0.1.json
python -m tools.results docs/results/runs --collect runs/onchip-0.15
python -m train.export runs/onchip-0.15 --out onchip-0.15.lbq
python -m train.measure onchip-0.15.lbq --data $DATA/cifar10 --run runs/onchip-0.15 --compare-golden 50 --out docs/results/measured/onchip-0.15.json
python -m tools.results docs/results/runs --collect runs/onchip-0.2-long
python -m train.export runs/onchip-0.2-long --out onchip-0.2-long.lbq
python -m train.measure onchip-0.2-long.lbq --data $DATA/cifar10 --run runs/onchip-0.2-long --compare-golden 50 --out docs/results/measured/onchip-0.2-long.json
python -m tools.results docs/results/runs --collect runs/onchip-0.2
python -m train.export runs/onchip-0.2 --out onchip-0.2.lbq
python -m train.measure onchip-0.2.lbq --data $DATA/cifar10 --run runs/onchip-0.2 --compare-golden 50 --out docs/results/measured/onchip-0.2.json
python -m tools.results docs/results/runs --collect runs/small-220
python -m train.export runs/small-220 --out small-220.lbq
python -m train.measure small-220.lbq --data $DATA/cifar10 --run runs/small-220 --compare-golden 50 --out docs/results/measured/small-220.json
python -m tools.results docs/results/runs --collect runs/small-long
python -m train.export runs/small-long --out small-long.lbq
python -m train.measure small-long.lbq --data $DATA/cifar10 --run runs/small-long --compare-golden 50 --out docs/results/measured/small-long.json
python -m tools.results docs/results/runs --collect runs/small
python -m train.export runs/small --out small.lbq
python -m train.measure small.lbq --data $DATA/cifar10 --run runs/small --compare-golden 50 --out docs/results/measured/small.json
python -m tools.results docs/results/runs --collect runs/sparse-0.05
python -m train.export runs/sparse-0.05 --out sparse-0.05.lbq
python -m train.measure sparse-0.05.lbq --data $DATA/cifar10 --run runs/sparse-0.05 --compare-golden 50 --out docs/results/measured/sparse-0.05.json
python -m tools.results docs/results/runs --collect runs/sparse-0.1
python -m train.export runs/sparse-0.1 --out sparse-0.1.lbq
python -m train.measure sparse-0.1.lbq --data $DATA/cifar10 --run runs/sparse-0.1 --compare-golden 50 --out docs/results/measured/sparse-0.1.json
python -m tools.results docs/results/runs --collect runs/sparse-0.2
python -m train.export runs/sparse-0.2 --out sparse-0.2.lbq
python -m train.measure sparse-0.2.lbq --data $DATA/cifar10 --run runs/sparse-0.2 --compare-golden 50 --out docs/results/measured/sparse-0.2.json
python -m tools.results docs/results/runs --collect runs/sparse-0.4
python -m train.export runs/sparse-0.4 --out sparse-0.4.lbq
python -m train.measure sparse-0.4.lbq --data $DATA/cifar10 --run runs/sparse-0.4 --compare-golden 50 --out docs/results/measured/sparse-0.4.json
python -m tools.results docs/results/runs --collect runs/sparse-4bit-0.12
python -m train.export runs/sparse-4bit-0.12 --out sparse-4bit-0.12.lbq
python -m train.measure sparse-4bit-0.12.lbq --data $DATA/cifar10 --run runs/sparse-4bit-0.12 --compare-golden 50 --out docs/results/measured/sparse-4bit-0.12.json
python -m tools.results docs/results/runs --collect runs/sparse-4bit-0.15
python -m train.export runs/sparse-4bit-0.15 --out sparse-4bit-0.15.lbq
python -m train.measure sparse-4bit-0.15.lbq --data $DATA/cifar10 --run runs/sparse-4bit-0.15 --compare-golden 50 --out docs/results/measured/sparse-4bit-0.15.json
python -m tools.results docs/results/runs --collect runs/sparse-4bit-0.3
python -m train.export runs/sparse-4bit-0.3 --out sparse-4bit-0.3.lbq
python -m train.measure sparse-4bit-0.3.lbq --data $DATA/cifar10 --run runs/sparse-4bit-0.3 --compare-golden 50 --out docs/results/measured/sparse-4bit-0.3.json
python -m tools.results docs/results/runs --collect runs/sparse-4bit-front-0.25
python -m train.export runs/sparse-4bit-front-0.25 --out sparse-4bit-front-0.25.lbq
python -m train.measure sparse-4bit-front-0.25.lbq --data $DATA/cifar10 --run runs/sparse-4bit-front-0.25 --compare-golden 50 --out docs/results/measured/sparse-4bit-front-0.25.json
python -m tools.results docs/results/runs --collect runs/t1-sam
python -m train.export runs/t1-sam --out t1-sam.lbq
python -m train.measure t1-sam.lbq --data $DATA/cifar10 --run runs/t1-sam --compare-golden 50 --out docs/results/measured/t1-sam.json
python -m tools.results docs/results/runs --collect runs/t1
python -m tools.results docs/results/runs --collect runs/t2-4bit-sam
python -m train.export runs/t2-4bit-sam --out t2-4bit-sam.lbq
python -m train.measure t2-4bit-sam.lbq --data $DATA/cifar10 --run runs/t2-4bit-sam --compare-golden 50 --out docs/results/measured/t2-4bit-sam.json
python -m tools.results docs/results/runs --collect runs/t2-4bit
python -m train.export runs/t2-4bit --out t2-4bit.lbq
python -m train.measure t2-4bit.lbq --data $DATA/cifar10 --run runs/t2-4bit --compare-golden 50 --out docs/results/measured/t2-4bit.json
python -m tools.results docs/results/runs --collect runs/t2-60more
python -m train.export runs/t2-60more --out t2-60more.lbq
python -m train.measure t2-60more.lbq --data $DATA/cifar10 --run runs/t2-60more --compare-golden 50 --out docs/results/measured/t2-60more.json
python -m tools.results docs/results/runs --collect runs/t4
python -m train.export runs/t4 --out t4.lbq
python -m train.measure t4.lbq --data $DATA/cifar10 --run runs/t4 --compare-golden 50 --out docs/results/measured/t4.json
make ablation DATA=$DATA ARGS='--set train.epochs=30'
python -m train --config cifar10-resnet20-v1 --set neuron.gamma0=0.25 --set train.epochs=30 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation/v1-gamma0
python -m tools.results docs/results/ablation --collect runs/ablation/*
python -m train --config cifar10-resnet20-ann --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ann-seed1
python -m train --config cifar10-resnet20-ann --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ann-seed2
python -m train --config cifar10-resnet20-ann --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ann
python -m train --config cifar10-resnet20-binary --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/binary-step025-seed1
python -m train --config cifar10-resnet20-binary --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/binary-step025-seed2
python -m train --config cifar10-resnet20-binary --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/binary-step025
python -m train --config cifar10-resnet20-binary --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/binary-step1-seed1
python -m train --config cifar10-resnet20-binary --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/binary-step1-seed2
python -m train --config cifar10-resnet20-binary --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/binary-step1
python -m train --config cifar10-resnet20-ilif --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ilif-step025-seed1
python -m train --config cifar10-resnet20-ilif --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ilif-step025-seed2
python -m train --config cifar10-resnet20-ilif --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ilif-step025
python -m train --config cifar10-resnet20-ilif --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ilif-step1-seed1
python -m train --config cifar10-resnet20-ilif --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ilif-step1-seed2
python -m train --config cifar10-resnet20-ilif --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ilif-step1
python -m train --config cifar10-resnet20-lmht --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/lmht-step025-seed1
python -m train --config cifar10-resnet20-lmht --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/lmht-step025-seed2
python -m train --config cifar10-resnet20-lmht --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/lmht-step025
python -m train --config cifar10-resnet20-lmht --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/lmht-step1-seed1
python -m train --config cifar10-resnet20-lmht --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/lmht-step1-seed2
python -m train --config cifar10-resnet20-lmht --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/lmht-step1
python -m train --config cifar10-resnet20-mlf --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/mlf-step025-seed1
python -m train --config cifar10-resnet20-mlf --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/mlf-step025-seed2
python -m train --config cifar10-resnet20-mlf --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/mlf-step025
python -m train --config cifar10-resnet20-mlf --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/mlf-step1-seed1
python -m train --config cifar10-resnet20-mlf --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/mlf-step1-seed2
python -m train --config cifar10-resnet20-mlf --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/mlf-step1
python -m train --config cifar10-resnet20-quant-ann --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/quant-ann-step025-seed1
python -m train --config cifar10-resnet20-quant-ann --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/quant-ann-step025-seed2
python -m train --config cifar10-resnet20-quant-ann --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/quant-ann-step025
python -m train --config cifar10-resnet20-quant-ann --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=1.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/quant-ann-step1-seed1
python -m train --config cifar10-resnet20-quant-ann --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=1.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/quant-ann-step1-seed2
python -m train --config cifar10-resnet20-quant-ann --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=1.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/quant-ann-step1
python -m train --config cifar10-resnet20-t1 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t1-step025-seed1
python -m train --config cifar10-resnet20-t1 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t1-step025-seed2
python -m train --config cifar10-resnet20-t1 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=3 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t1-step025-seed3
python -m train --config cifar10-resnet20-t1 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t1-step025
python -m train --config cifar10-resnet20-t1 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t1-step1-seed1
python -m train --config cifar10-resnet20-t1 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t1-step1-seed2
python -m train --config cifar10-resnet20-t1 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t1-step1
python -m train --config cifar10-resnet20-t2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t2-step025-seed1
python -m train --config cifar10-resnet20-t2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t2-step025-seed2
python -m train --config cifar10-resnet20-t2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=3 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t2-step025-seed3
python -m train --config cifar10-resnet20-t2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=4 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t2-step025-seed4
python -m train --config cifar10-resnet20-t2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=5 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t2-step025-seed5
python -m train --config cifar10-resnet20-t2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t2-step025
python -m train --config cifar10-resnet20-t2 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t2-step1-seed1
python -m train --config cifar10-resnet20-t2 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t2-step1-seed2
python -m train --config cifar10-resnet20-t2 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/t2-step1
python -m train --config cifar10-resnet20-ternary-fixed --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-fixed-step025-seed1
python -m train --config cifar10-resnet20-ternary-fixed --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-fixed-step025-seed2
python -m train --config cifar10-resnet20-ternary-fixed --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-fixed-step025
python -m train --config cifar10-resnet20-ternary-fixed --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-fixed-step1-seed1
python -m train --config cifar10-resnet20-ternary-fixed --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-fixed-step1-seed2
python -m train --config cifar10-resnet20-ternary-fixed --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-fixed-step1
python -m train --config cifar10-resnet20-ternary-learned --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-learned-step025-seed1
python -m train --config cifar10-resnet20-ternary-learned --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-learned-step025-seed2
python -m train --config cifar10-resnet20-ternary-learned --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-learned-step025
python -m train --config cifar10-resnet20-ternary-learned --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-learned-step1-seed1
python -m train --config cifar10-resnet20-ternary-learned --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-learned-step1-seed2
python -m train --config cifar10-resnet20-ternary-learned --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/ternary-learned-step1
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-low0-step025-seed1
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-low0-step025-seed2
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-low0-step025
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-low0-step1-seed1
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-low0-step1-seed2
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-low0-step1
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-step025-seed1
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-step025-seed2
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-step025
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-step1-seed1
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-step1-seed2
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-step1
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.gamma0=0.25 --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-tails-step025-seed1
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.gamma0=0.25 --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-tails-step025-seed2
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.gamma0=0.25 --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-tails-step025
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-tails-step1-seed1
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-tails-step1-seed2
python -m train --config cifar10-resnet20-v1 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v1-tails-step1
python -m train --config cifar10-resnet20-v2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v2-step025-seed1
python -m train --config cifar10-resnet20-v2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v2-step025-seed2
python -m train --config cifar10-resnet20-v2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=3 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v2-step025-seed3
python -m train --config cifar10-resnet20-v2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=4 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v2-step025-seed4
python -m train --config cifar10-resnet20-v2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=5 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v2-step025-seed5
python -m train --config cifar10-resnet20-v2 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v2-step025
python -m train --config cifar10-resnet20-v2 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v2-step1-seed1
python -m train --config cifar10-resnet20-v2 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v2-step1-seed2
python -m train --config cifar10-resnet20-v2 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v2-step1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set neuron.scale_step=true --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-scaled-step025-seed1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set neuron.scale_step=true --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-scaled-step025-seed2
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set neuron.scale_step=true --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-scaled-step025
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.scale_step=true --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-scaled-step1-seed1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.scale_step=true --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-scaled-step1-seed2
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.scale_step=true --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-scaled-step1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-step025-seed1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-step025-seed2
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-step025
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-step1-seed1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-step1-seed2
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.low=0.0 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-low0-step1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-step025-seed1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-step025-seed2
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.gamma0=0.25 --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-step025
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-step1-seed1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-step1-seed2
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-step1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.gamma0=0.25 --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-tails-step025-seed1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.gamma0=0.25 --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-tails-step025-seed2
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.gamma0=0.25 --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-tails-step025
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=1 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-tails-step1-seed1
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.seed=2 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-tails-step1-seed2
python -m train --config cifar10-resnet20-v3 --set 'model.widths=[64, 128, 256]' --set neuron.surrogate=relsg --set neuron.learn_lambda=false --set train.epochs=60 --set train.batch=256 --set train.lr=0.1 --set train.warmup_epochs=2.0 --set train.compile=reduce-overhead --set train.fuse=true --data $DATA/cifar10 --out runs/ablation-60/v3-tails-step1
python -m tools.results docs/results/ablation-60 --collect runs/ablation-60/*
make bench-gpu ARGS='--json docs/results/bench-gpu.json'
make bench-gpu ARGS='--profile --json docs/results/profile-gpu.json'
python -m tools.results docs/results
