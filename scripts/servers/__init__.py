"""The private servers that scripts/services starts. A new one is a module with a subclass of Service, and a row here."""
from .kafka import Kafka
from .mariadb import MariaDb
from .rabbitmq import RabbitMq
from .redis import Redis, RedisCluster

SERVICES = {service.name: service for service in (MariaDb, Redis, RedisCluster, RabbitMq, Kafka)}
USUAL = ("mariadb", "redis", "rabbitmq", "kafka")  # what is meant when none is named
