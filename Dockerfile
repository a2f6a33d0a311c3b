# Tidegate from its source: the wheel is built in the first stage, the second has Python and what live networks need.
#   docker build -t tidegate . && docker run --rm tidegate demo --sim --out /tmp/demo
# With the extras: docker build --build-arg EXTRAS=cluster,tune,view -t tidegate .
# Live networks and the switch need the host's privileges:
#   docker run --rm -it --privileged tidegate doctor
# Both images are named by version, not by digest: a digest would have to be read from the registry that serves it
# (`docker buildx imagetools inspect rust:1.95.0-bookworm`), which the tests of this file do not reach.
FROM rust:1.95.0-bookworm AS build
# That of the image, which has no clippy and rustfmt: rust-toolchain.toml would fetch them.
ENV RUSTUP_TOOLCHAIN=1.95.0
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3=3.11.* python3-dev=3.11.* python3-venv=3.11.* \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements.lock requirements-run.lock ./
# What it needs, in the versions that the tests have run with, checked by their hashes. jenkspy is compiled on aarch64, where it has no
# wheel: the second stage has no compiler.
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements.lock \
    && /opt/build/bin/pip wheel --no-cache-dir --require-hashes -r requirements-run.lock -w /dist
COPY . .
RUN /opt/build/bin/maturin build --release --strip --compatibility pypi --out /dist
# What the extras need, of which the second stage installs those that are asked for.
ARG EXTRAS=
RUN if [ -n "$EXTRAS" ]; then \
        /opt/build/bin/pip wheel --no-cache-dir --require-hashes -r requirements-extras.lock -w /dist; \
    fi

FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        clang=1:14.* ethtool=1:6.* iperf3=3.* iproute2=6.* iputils-ping=3:* libbpf1=1:1.* \
    && rm -rf /var/lib/apt/lists/*
ARG EXTRAS=
# Each version is that of the lock files: no others are there.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/dist,target=/dist \
    pip install --no-cache-dir --no-index --find-links /dist "tidegate${EXTRAS:+[$EXTRAS]}" \
    && pip check
WORKDIR /work
ENTRYPOINT ["tidegate"]
CMD ["--help"]
