# Sourced by cases. alarms FILE: a recording, a sample each 10 s of 20 minutes: GPU 0 falls off the bus at minute 5 (Xid 79) and is
# back at minute 10; GPU 1 has a row that waits for a reset from the beginning to minute 8.
alarms() {
  python3 - "$1" <<'END'
import json, sys
with open(sys.argv[1], "w") as file:
    file.write('{"schema":"cufit.samples/1"}\n')
    for i in range(121):
        time, gpus = 1796000000 + i * 10, []
        for n in range(2):
            gpu = {"index": n, "uuid": "GPU-%d" % n, "name": "NVIDIA H200", "pci": "0000:6%d:00.0" % n}
            if n == 0 and 30 <= i < 60:
                gpu["lost"] = 15
            else:
                gpu |= {"memory_total_bytes": 1 << 37, "memory_used_bytes": 1 << 33, "utilization": 0.5}
            if n == 1 and i < 48:
                gpu["remap_pending"] = True
            gpus.append(gpu)
        sample = {"time": time, "driver_version": "580.95.05", "gpus": gpus}
        if i >= 30:
            sample["xids"] = [{"pci": "0000:60:00", "number": 79, "count": 1}]
        file.write(json.dumps(sample) + "\n")
END
}
