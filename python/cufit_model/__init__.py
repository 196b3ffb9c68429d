# SPDX-License-Identifier: Apache-2.0
"""What `cufit fit MODEL --train ...` trains: the model that a checkpoint's headers and config.json
describe, built without its weights by the installed transformers or diffusers, and a plain training
loop around it. Runs under the tracer like any other program. CUFIT_FIT_MODEL says what to build
(src/fit/model_spec.h); nothing is downloaded, no code of the model's folder runs."""
