@note made
@note services.profile
if [ -n "${VIRTUAL_ENV:-}" ]; then
  PATH="$VIRTUAL_ENV/bin:$PATH"
  export PATH
fi
