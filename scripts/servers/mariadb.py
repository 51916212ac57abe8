"""MariaDB: a database `weir` and a user of that name, who may do everything; root may come in through the socket only."""
import os
import pwd
import secrets

from .ports import free_port
from .service import Service


class MariaDb(Service):
    name = "mariadb"
    needs = "mariadb"
    programs = ("mariadbd", "mariadb-install-db", "mariadb")

    def choose(self):
        return {"port": free_port(), "password": secrets.token_hex(16)}

    def prepare(self):
        port, password = self.settings["port"], self.settings["password"]
        # As root it has to be told that this is meant; another user is simply itself.
        user = "user = root\n" if os.getuid() == 0 else ""
        self.write("server.cnf", f"""[mariadbd]
{user}datadir = {self.home}/data
tmpdir = {self.home}/tmp
init-file = {self.home}/init.sql
# Relative to the data: the whole path could be longer than a socket's name may be.
socket = mariadb.sock
pid-file = mariadb.pid
bind-address = 127.0.0.1
port = {port}
skip-name-resolve
skip-log-bin
character-set-server = utf8mb4
innodb-buffer-pool-size = 128M
""")
        self.write("init.sql", f"""CREATE DATABASE IF NOT EXISTS weir CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE USER IF NOT EXISTS weir@'%' IDENTIFIED BY '{password}';
GRANT ALL ON *.* TO weir@'%';
""")
        self.write("client.cnf", f"""[client]
host = 127.0.0.1
port = {port}
user = weir
password = {password}
connect-timeout = 5
default-character-set = utf8mb4
""")
        account = pwd.getpwuid(os.getuid()).pw_name
        self.run(["mariadb-install-db", "--no-defaults", f"--datadir={self.home}/data", "--skip-test-db",
                  "--auth-root-authentication-method=socket", f"--auth-root-socket-user={account}",
                  *(["--user=root"] if account == "root" else [])])

    def commands(self):
        return {"mariadbd": ["mariadbd", f"--defaults-file={self.home}/server.cnf"]}

    def ports(self, name):
        return [self.settings["port"]]

    def check(self):
        self.run(["mariadb", f"--defaults-file={self.home}/client.cnf", "--batch", "--execute=DO 1", "weir"],
                 log=self.home / "check.log")

    def lines(self):
        return {"WEIR_STORE_URL": f"mysql://weir:{self.settings['password']}@127.0.0.1:{self.settings['port']}/weir"}

    def addresses(self):
        return [f"127.0.0.1:{self.settings['port']}"]
