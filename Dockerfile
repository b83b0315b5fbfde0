# The hub's web server and worker; the database is a container of its own (docker-compose.yml).
# Looked up in docker-library/repo-info.
FROM python:3.11-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MEMORYHUB_HOME=/data

RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin hub \
    && install -d -o hub -g hub -m 0700 /data

WORKDIR /srv/hub
COPY requirements.lock ./
RUN python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.lock
COPY manage.py ./
COPY memoryhub memoryhub
COPY memories memories
COPY templates templates
COPY static static
COPY locale locale

USER hub
VOLUME /data
EXPOSE 8000
CMD ["python", "manage.py", "web", "--bind", "0.0.0.0:8000"]
