# SPDX-License-Identifier: Apache-2.0
"""Models of diffusers."""

import json

import torch

from .four_bit import quantise
from .lora import lora_diffusion
from .ranks import dealt_out
from .spec import AUTOCAST, BATCH, SPEC, WEIGHTS, needed, stop
from .training import built, train


UNETS = {
    "sd1": dict(
        sample_size=64,
        block_out_channels=(320, 640, 1280, 1280),
        cross_attention_dim=768,
        attention_head_dim=8,
    ),
    "sd2": dict(
        sample_size=64,
        block_out_channels=(320, 640, 1280, 1280),
        cross_attention_dim=1024,
        attention_head_dim=(5, 10, 20, 20),
        use_linear_projection=True,
    ),
    "sdxl": dict(
        sample_size=128,
        block_out_channels=(320, 640, 1280),
        cross_attention_dim=2048,
        attention_head_dim=(5, 10, 20),
        use_linear_projection=True,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        transformer_layers_per_block=(1, 2, 10),
        addition_embed_type="text_time",
        addition_time_embed_dim=256,
        projection_class_embeddings_input_dim=2816,
    ),
}


def build_diffusion():
    diffusers = needed("diffusers")
    if SPEC["config"]:
        with open(SPEC["config"], encoding="utf-8") as file:
            values = {
                key: value for key, value in json.load(file).items() if key != "quantization_config"
            }
    elif SPEC["kind"] == "flux":
        values = dict(
            num_layers=SPEC["blocks"][0],
            num_single_layers=SPEC["blocks"][1],
            guidance_embeds=SPEC["guidance"],
        )
    else:
        values = dict(UNETS[SPEC["kind"]], in_channels=SPEC["channels"])
    cls = getattr(diffusers, SPEC["architecture"], None)
    if cls is None:
        stop("class", "%s (diffusers %s)" % (SPEC["architecture"], diffusers.__version__))
    model = cls.from_config(values)
    built(model, "diffusers %s" % diffusers.__version__)
    return model


def rows(*shape):
    return torch.randn(*shape, dtype=AUTOCAST or WEIGHTS, device="cuda")


def unet_loss(model, config):
    latent = SPEC["res"] // 8
    latents = torch.randn(BATCH, 4, latent, latent).to("cuda", AUTOCAST or WEIGHTS)
    noise = torch.randn_like(latents)
    steps = torch.randint(0, 1000, (BATCH,), device="cuda")
    noisy = latents + noise
    if config.in_channels > 4:  # inpainting: a mask and the masked picture
        noisy = torch.cat([noisy, rows(BATCH, config.in_channels - 4, latent, latent)], dim=1)
    width = config.cross_attention_dim
    more = {}
    if config.addition_embed_type == "text_time":
        ids = config.addition_time_embed_dim
        more["added_cond_kwargs"] = {
            "text_embeds": rows(BATCH, config.projection_class_embeddings_input_dim - 6 * ids),
            "time_ids": rows(BATCH, 6),
        }
    out = model(
        noisy, steps, rows(BATCH, 77, width if isinstance(width, int) else width[0]), **more
    ).sample
    loss = torch.nn.functional.mse_loss(out.float()[:, :4], noise.float(), reduction="none")
    return loss.mean([1, 2, 3]).mean()


def flux_loss(model, config):
    side = SPEC["res"] // 16
    latents = torch.randn(BATCH, side * side, config.in_channels).to("cuda", AUTOCAST or WEIGHTS)
    noise = torch.randn_like(latents)
    sigma = torch.rand(BATCH, 1, 1, device="cuda")
    noisy = ((1 - sigma) * latents + sigma * noise).to(latents.dtype)
    guidance = torch.ones(BATCH, device="cuda") if config.guidance_embeds else None
    out = model(
        hidden_states=noisy,
        timestep=sigma.view(-1),
        guidance=guidance,
        pooled_projections=rows(BATCH, config.pooled_projection_dim),
        encoder_hidden_states=rows(BATCH, 512, config.joint_attention_dim),
        txt_ids=torch.zeros(512, 3, device="cuda"),
        img_ids=torch.zeros(side * side, 3, device="cuda"),
    ).sample
    return torch.nn.functional.mse_loss(out.float(), (noise - latents).float())


def sd3_loss(model, config):
    latent = SPEC["res"] // 8
    latents = torch.randn(BATCH, config.in_channels, latent, latent).to("cuda", AUTOCAST or WEIGHTS)
    noise = torch.randn_like(latents)
    sigma = torch.rand(BATCH, 1, 1, 1, device="cuda")
    noisy = ((1 - sigma) * latents + sigma * noise).to(latents.dtype)
    out = model(
        hidden_states=noisy,
        timestep=sigma.view(-1) * 1000,
        encoder_hidden_states=rows(BATCH, 333, config.joint_attention_dim),
        pooled_projections=rows(BATCH, config.pooled_projection_dim),
    ).sample
    return torch.nn.functional.mse_loss(out.float(), (noise - latents).float())


LOSSES = {
    "UNet2DConditionModel": unet_loss,
    "FluxTransformer2DModel": flux_loss,
    "SD3Transformer2DModel": sd3_loss,
}


def train_diffusion():
    model = build_diffusion()
    torch.nn.Module.to(model, WEIGHTS)
    if SPEC["train"] == "qlora":
        quantise(model)
    if SPEC["checkpointing"]:
        model.enable_gradient_checkpointing()
    config = model.config
    if SPEC["train"] != "full":
        model = lora_diffusion(model, SPEC["rank"])
    model = dealt_out(model)
    train(model, lambda: LOSSES[SPEC["architecture"]](model, config))
