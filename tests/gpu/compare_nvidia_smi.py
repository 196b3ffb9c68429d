#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what cufit reads through NVML with what nvidia-smi prints, field by field.

    cufit doctor --json > doctor.json; nvidia-smi -q -x > smi.xml
    compare_nvidia_smi.py doctor.json smi.xml

Prints one line per field: agree, differ, or moved (a value that changes between two readings, such as the
temperature, and did so). Exit code 0 = nothing differs, 1 = something differs, 2 = the files cannot be compared.
Standard library only.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree

MIB = 1 << 20
MISSING = "(missing)"


def fact(facts, name):
    """The value of a fact, or MISSING. An absent member is a fact that was never asked."""
    entry = facts.get(name)
    return entry["value"] if isinstance(entry, dict) and "value" in entry else MISSING


def smi_text(node, *paths):
    """The first of these elements that has a value; nvidia-smi renames elements between versions."""
    for path in paths:
        found = node.find(path)
        if found is not None and found.text is not None:
            text = found.text.strip()
            if text not in ("", "N/A", "[N/A]", "Not Supported", "[Not Supported]", "Unknown Error",
                            "Requested functionality has been deprecated"):
                return text
    return MISSING


def smi_number(node, *paths):
    text = smi_text(node, *paths)
    if text == MISSING:
        return MISSING
    digits = text.split()[0].rstrip("x")
    return float(digits) if "." in digits else int(digits)


def smi_flag(node, *paths):
    text = smi_text(node, *paths)
    words = {"Enabled": True, "Yes": True, "Disabled": False, "No": False, "None": False}
    return words.get(text, text)


def smi_sum(node, *paths):
    """Sum of the elements that exist; MISSING when none does."""
    values = [value for value in (smi_number(node, path) for path in paths) if value != MISSING]
    return sum(values) if values else MISSING


def smi_pci(node):
    text = smi_text(node, "pci/pci_bus_id")
    if text == MISSING:
        return MISSING
    domain, rest = text.lower().split(":", 1)
    return "%04x:%s" % (int(domain, 16), rest)


def smi_throttle(node):
    for parent in ("clocks_event_reasons", "clocks_throttle_reasons"):
        reasons = node.find(parent)
        if reasons is None:
            continue
        active = []
        for reason in reasons:
            name = reason.tag.replace("clocks_event_reason_", "").replace("clocks_throttle_reason_", "")
            if (reason.text or "").strip() == "Active" and name != "gpu_idle":
                active.append({"display_clocks_setting": "display_clock_setting"}.get(name, name))
        return sorted(active)
    return MISSING


class Report:
    def __init__(self):
        self.differences = 0
        self.compared = 0

    def line(self, where, name, ours, theirs, same, moves):
        verdict = "agree" if same else "moved" if moves else "differ"
        self.compared += 1
        self.differences += verdict == "differ"
        print("%-7s %-8s %-28s cufit %-40s nvidia-smi %s" % (verdict, where, name, ours, theirs))

    def equal(self, where, name, ours, theirs, moves=False):
        self.line(where, name, ours, theirs, ours == theirs, moves)

    def near(self, where, name, ours, theirs, step, moves=False):
        """Equal within one step of what nvidia-smi prints."""
        if MISSING in (ours, theirs):
            return self.equal(where, name, ours, theirs, moves)
        return self.line(where, name, ours, theirs, abs(ours - theirs) <= step, moves)


def ecc_errors(node, period):
    corrected = smi_sum(node, period + "/sram_correctable", period + "/dram_correctable")
    uncorrected = smi_sum(node, period + "/sram_uncorrectable", period + "/sram_uncorrectable_parity",
                          period + "/sram_uncorrectable_secded", period + "/dram_uncorrectable")
    if corrected == MISSING:  # before Ampere
        corrected = smi_number(node, period + "/single_bit/total")
    if uncorrected == MISSING:
        uncorrected = smi_number(node, period + "/double_bit/total")
    return corrected, uncorrected


def compare_memory(report, where, gpu, node):
    for name, path, moves in (("total", "total", False), ("reserved", "reserved", True), ("used", "used", True),
                              ("free", "free", True)):
        ours = fact(gpu, "memory_%s_bytes" % name)
        ours = ours if ours == MISSING else ours / MIB
        report.near(where, "memory %s MiB" % name, ours, smi_number(node, "fb_memory_usage/" + path), 1, moves)


def compare_gpu(report, gpu, node):
    where = "gpu %d" % gpu.get("index", 0)
    brand = smi_text(node, "product_brand")
    brand = brand if brand == MISSING else brand.lower().replace(" ", "_")
    mode = smi_text(node, "compute_mode")
    mode = mode if mode == MISSING else mode.lower()
    for name, theirs in (
            ("name", smi_text(node, "product_name")), ("uuid", smi_text(node, "uuid")),
            ("serial", smi_text(node, "serial")), ("pci_address", smi_pci(node)), ("brand", brand),
            ("compute_mode", mode),
            ("mig_current", smi_flag(node, "mig_mode/current_mig")),
            ("mig_pending", smi_flag(node, "mig_mode/pending_mig")),
            ("ecc_current", smi_flag(node, "ecc_mode/current_ecc")),
            ("ecc_pending", smi_flag(node, "ecc_mode/pending_ecc")),
            ("persistence", smi_flag(node, "persistence_mode")),
            ("display_active", smi_flag(node, "display_active")),
            ("retirement_pending", smi_flag(node, "retired_pages/pending_retirement",
                                            "retired_pages/pending_blacklist")),
            ("remapped_correctable", smi_number(node, "remapped_rows/remapped_row_corr")),
            ("remapped_uncorrectable", smi_number(node, "remapped_rows/remapped_row_unc")),
            ("remap_pending", smi_flag(node, "remapped_rows/remapped_row_pending")),
            ("remap_failed", smi_flag(node, "remapped_rows/remapped_row_failure")),
            ("pcie_gen_max", smi_number(node, "pci/pci_gpu_link_info/pcie_gen/max_link_gen")),
            ("pcie_width_max", smi_number(node, "pci/pci_gpu_link_info/link_widths/max_link_width"))):
        report.equal(where, name, fact(gpu, name), theirs)
    compare_memory(report, where, gpu, node)
    for period in ("volatile", "aggregate"):
        corrected, uncorrected = ecc_errors(node, "ecc_errors/" + period)
        report.equal(where, "ecc corrected " + period, fact(gpu, "ecc_corrected_" + period), corrected)
        report.equal(where, "ecc uncorrected " + period, fact(gpu, "ecc_uncorrected_" + period), uncorrected)
    compare_moving(report, where, gpu, node)


def compare_moving(report, where, gpu, node):
    report.equal(where, "pcie_gen", fact(gpu, "pcie_gen"),
                 smi_number(node, "pci/pci_gpu_link_info/pcie_gen/current_link_gen"), moves=True)
    report.equal(where, "pcie_width", fact(gpu, "pcie_width"),
                 smi_number(node, "pci/pci_gpu_link_info/link_widths/current_link_width"), moves=True)
    throttle = fact(gpu, "throttle")
    report.equal(where, "throttle", throttle if throttle == MISSING else sorted(throttle), smi_throttle(node),
                 moves=True)
    report.near(where, "temperature_c", fact(gpu, "temperature_c"), smi_number(node, "temperature/gpu_temp"), 1,
                moves=True)
    report.near(where, "power_watts", fact(gpu, "power_watts"),
                smi_number(node, "gpu_power_readings/average_power_draw", "gpu_power_readings/instant_power_draw",
                           "gpu_power_readings/power_draw", "power_readings/power_draw"), 2, moves=True)
    report.near(where, "power_limit_watts", fact(gpu, "power_limit_watts"),
                smi_number(node, "gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit",
                           "power_readings/power_limit"), 0.5)
    processes = fact(gpu, "processes")
    ours = MISSING if processes == MISSING else sorted(process.get("pid", 0) for process in processes)
    listed = node.find("processes")
    theirs = MISSING if listed is None else sorted({int(pid.text) for pid in listed.iter("pid")})
    report.equal(where, "process ids", ours, theirs, moves=True)
    report.equal(where, "mig instances", len(gpu.get("mig_instances", [])), len(node.findall("mig_devices/mig_device")))


def main(arguments):
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with open(arguments[1], encoding="utf-8") as file:
            document = json.load(file)
        root = ElementTree.parse(arguments[2]).getroot()
        nvml = document.get("facts", document)["nvml"]
    except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
        print("cannot compare: %s: %s" % (type(error).__name__, error), file=sys.stderr)
        return 2
    report = Report()
    report.equal("system", "driver_version", fact(nvml, "driver_version"), smi_text(root, "driver_version"))
    cuda = fact(nvml, "cuda_version")
    cuda = cuda if cuda == MISSING else "%d.%d" % (cuda // 1000, cuda % 1000 // 10)
    report.equal("system", "cuda_version", cuda, smi_text(root, "cuda_version"))
    gpus, nodes = nvml.get("gpus", []), root.findall("gpu")
    report.equal("system", "number of gpus", len(gpus), len(nodes))
    by_pci = {smi_pci(node): node for node in nodes}
    for gpu in gpus:
        node = by_pci.get(fact(gpu, "pci_address"))
        if node is None:
            report.equal("gpu %d" % gpu.get("index", 0), "pci_address", fact(gpu, "pci_address"), MISSING)
        else:
            compare_gpu(report, gpu, node)
    print("%d fields compared, %d differ" % (report.compared, report.differences))
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
