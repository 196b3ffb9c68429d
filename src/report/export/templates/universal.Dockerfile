# syntax=docker/dockerfile:1
@note made
@note universal.head
# docker run -d @gpus_flag@--shm-size=8g --ulimit memlock=-1 \
#   @publish@ \
@if ssh
#   -v ~/.ssh/id_ed25519.pub:/run/secrets/authorized_keys:ro \
@end
#   -v "$PWD:/workspace" torch
@note universal.program

@if no_built
@note docker.base
@end
@if built
@note docker.built
@note docker.uv
@end
@if glibc
@note docker.glibc
@end
@note universal.debian
ARG BASE=@base@
ARG UV=uv

@note universal.tools
FROM ${BASE} AS tools
ARG UV
RUN pip install --no-cache-dir --target /opt/uv "${UV}"

FROM ${BASE}
@if gpu
@note docker.nvidia
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
@if require
@note docker.require
ENV NVIDIA_REQUIRE_CUDA="@require@"
@end
@if no_require
@note docker.no_require
@end
@end
@if ssh
@note universal.sshd
RUN apt-get update && \
    apt-get install --yes --no-install-recommends openssh-server && \
    rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*
@end
COPY cufit /usr/local/bin/cufit
WORKDIR /opt/cufit
@if folders
@note docker.folders
@end
@each folder
COPY @path@ /opt/cufit/@path@
@end
COPY @lock_file@ ./cufit.lock
COPY @pylocks@ ./
@if jupyter
@note universal.jupyter
ARG JUPYTER=jupyterlab
ARG KERNEL=ipykernel
@end
@note universal.create
RUN --mount=type=bind,from=tools,source=/opt/uv,target=/opt/uv \
@if folders
    rm -rf .cufit && \
@end
    export PATH="/opt/uv/bin:${PATH}" UV_CACHE_DIR=/opt/cufit/.cache UV_LINK_MODE=hardlink \
    UV_PYTHON_DOWNLOADS=@downloads@ UV_PYTHON_INSTALL_DIR=/opt/cufit/python && \
    cufit env create @create@ && \
@if jupyter
    uv venv --quiet jupyter && \
    uv pip install --quiet --python jupyter/bin/python "${JUPYTER}" && \
    uv pip freeze --python jupyter/bin/python >jupyter.txt && \
    for class in @create@; do \
        python=.cufit/envs/$class/bin/python && \
        uv pip list --quiet --format freeze --python $python >/tmp/locked.txt && \
        uv pip install --quiet --python $python --target kernels/$class \
            --constraints /tmp/locked.txt "${KERNEL}" && \
        CUFIT_CLASS=$class PYTHONPATH=kernels/$class $python -c 'import ipykernel.kernelapp' && \
        uv pip freeze --path kernels/$class >kernels.$class.txt || exit 1; \
    done && \
@end
    rm -rf /opt/cufit/.cache /tmp/locked.txt
@note universal.image
COPY image /opt/cufit/image
@if ssh
COPY image/sshd_config /etc/ssh/sshd_config
COPY image/profile.sh /etc/profile.d/cufit.sh
@end
@note universal.user
RUN useradd --create-home --uid 1000 --shell /bin/bash app && \
    install --directory --owner=app --group=app --mode=0700 /var/lib/cufit && \
    install --directory --owner=app --group=app /workspace
ENV CUFIT_LOCK=/opt/cufit \
    PYTHONUNBUFFERED=1
@if only
ENV PATH=/opt/cufit/.cufit/envs/@only@/bin:${PATH}
@end
USER 1000:1000
WORKDIR /workspace
EXPOSE@ports@
LABEL org.opencontainers.image.title="@title@" \
      org.opencontainers.image.description="@description@" \
      org.opencontainers.image.version="@lock_short@" \
      org.opencontainers.image.base.name="@base@" \
      cufit.lock.sha256="@lock_sha256@"
@note universal.health
HEALTHCHECK --interval=1m --timeout=30s --start-period=1m CMD ["cufit", "preflight", "-q"]

@note universal.entry
ENTRYPOINT ["cufit", "run", "--"]
CMD ["bash", "/opt/cufit/image/services"]
