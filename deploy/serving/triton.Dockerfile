# SPDX-License-Identifier: MIT
# Triton Inference Server with Rondo's backend. TRITON_IMAGE has the server; the backend is built in it, so both use the
# same C library. See deploy/README.md.
ARG TRITON_IMAGE

FROM ${TRITON_IMAGE} AS build
COPY . /source
WORKDIR /source
RUN scripts/setup build
RUN cmake -S . -B /build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX=/opt/rondo \
      "-DRONDO_COMPONENTS=tensor;session;onnx;triton" -DRONDO_BUILD_TESTS=OFF -DRONDO_BUILD_EXAMPLES=OFF \
      -DRONDO_BUILD_BENCH=OFF && \
    cmake --build /build && cmake --install /build --strip

FROM ${TRITON_IMAGE}
# Rondo uses oneDNN 2 if it is there; newer releases have another version only.
RUN apt-get update && \
    apt-get install -y --no-install-recommends libopenblas0-pthread libprotobuf-c1 && \
    { apt-get install -y --no-install-recommends libdnnl2 || echo "without oneDNN 2"; } && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/rondo /opt/rondo
EXPOSE 8000 8001 8002
ENTRYPOINT ["tritonserver", "--backend-directory=/opt/rondo/lib/rondo/triton", \
            "--backend-config=rondo,default-max-batch-size=64"]
CMD ["--model-repository=/models"]
