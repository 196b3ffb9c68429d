# Sourced by cases. A lock in $D for two machines, of the classes cu128 and cu117, which the stand-in
# of uv resolved.
export CUFIT_UV=tests/standin/uv
D="$TMP/p"
"$CUFIT" lock "torch<=2.8.0" numpy --python 3.11 --for "RTX 5090,580" --for "A800,470" \
  --default-index-only -o "$D" >"$TMP/out"

# masked: what differs from run to run. sizes_masked: with all sizes, where conda adds packages.
masked() { sed "s|$TMP|TMP|g; s/20[0-9-]*T[0-9:]*Z/TIME/; s/[0-9.]* [KM]iB, of/SIZE, of/"; }
sizes_masked() { masked | sed 's/[0-9.]* [KM]iB/SIZE/'; }
