# Sourced by cases. An image that serves by SSH and Jupyter, with nearly all that its rules
# forbid: passwords, root, keys, no token, a wrong port, secrets.
. tests/cli/image/make_image.sh
serving_image() {
  mkdir -p img/usr/sbin img/etc/ssh/sshd_config.d img/root/.ssh img/root/.jupyter img/usr/bin up
  printf x >img/usr/sbin/sshd
  printf x >img/usr/bin/jupyter-lab
  printf 'Include /etc/ssh/sshd_config.d/*.conf\nPasswordAuthentication no\nUsePAM yes\nKbdInteractiveAuthentication no\n' \
    >img/etc/ssh/sshd_config
  printf '# first value counts\nPasswordAuthentication yes\nPermitRootLogin yes\nPort 2222\n' \
    >img/etc/ssh/sshd_config.d/10-team.conf
  printf 'key' >img/etc/ssh/ssh_host_rsa_key
  printf 'ssh-ed25519 AAAA bob\n' >img/root/.ssh/authorized_keys
  printf 'key' >img/root/.ssh/id_rsa
  printf 'root:x:0:0:root:/root:/bin/bash\nbob:x:1000:1000::/home/bob:/bin/bash\n' >img/etc/passwd
  printf 'root:$6$salt$hash:19000:0:99999:7:::\nbob::19000:0:99999:7:::\ndaemon:*:19000::::::\n' \
    >img/etc/shadow
  printf "c.NotebookApp.token = ''\nc.NotebookApp.password = ''\nc.ServerApp.port = 8888\n" \
    >img/root/.jupyter/jupyter_notebook_config.py
  layer base.tar
  mkdir -p up/etc/ssh
  : >up/etc/ssh/.wh.ssh_host_rsa_key
  tar -C up -czf top.tar .
  CONFIG='{"architecture":"amd64","os":"linux","config":{"Env":["HF_TOKEN=hf_notatokenatall","DB_PASSWORD_FILE=/run/x","GPG_KEY=A035C8C19219BA821ECEA86B64E628F8D684696D"],"ExposedPorts":{"22/tcp":{},"8888/tcp":{}},"Cmd":["jupyter","lab","--allow-root"]},"history":[{"created_by":"RUN |1 PIP_PASSWORD=secret /bin/sh -c pip install x"},{"created_by":"RUN rm"}]}'
  image base.tar top.tar
}
