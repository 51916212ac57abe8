#include "site/app/read_events.h"

#include <filesystem>
#include <string>

#include "site/app/site_settings.h"
#include "site/interaction/interaction.h"
#include "weir/queue/embedded_queue.h"
#include "weir/queue/rabbit_queue.h"

namespace weir::site {
namespace {

queue::Acks acks(const config::Settings& settings) {
  const std::string text = settings.text("queue.acks");
  if (text == "0") return queue::Acks::none;
  return text == "1" ? queue::Acks::leader : queue::Acks::all;
}

std::uint32_t partitions(const config::Settings& settings) {
  return static_cast<std::uint32_t>(settings.integer("queue.partitions"));
}

std::uint32_t replication(const config::Settings& settings) {
  return static_cast<std::uint32_t>(settings.integer("queue.replication"));
}

std::chrono::seconds retention(const config::Settings& settings) {
  return std::chrono::duration_cast<std::chrono::seconds>(settings.duration("queue.retention"));
}

std::unique_ptr<queue::Queue> open_embedded(const config::Settings& settings) {
  queue::EmbeddedQueue::Options options;
  options.path = queue_path(settings).string();
  options.partitions = partitions(settings);
  options.full_sync = acks(settings) == queue::Acks::all;
  options.retention = retention(settings);
  return std::make_unique<queue::EmbeddedQueue>(std::move(options));
}

std::unique_ptr<queue::Queue> open_rabbitmq(const config::Settings& settings) {
  queue::RabbitQueue::Options options;
  options.url = settings.text("queue.url");
  options.partitions = partitions(settings);
  options.replication = replication(settings);
  options.retention = retention(settings);
  return std::make_unique<queue::RabbitQueue>(std::move(options));
}

std::unique_ptr<queue::Queue> open_queue(const config::Settings& settings) {
  return settings.text("queue.url") == kEmbedded ? open_embedded(settings) : open_rabbitmq(settings);
}

// A broker keeps an event for the groups that it knows, so they are known before the first one is sent.
void make_known(queue::Queue& queue) {
  for (const std::string_view group : {interaction::kCountGroup, interaction::kHistoryGroup})
    queue.subscribe(std::string(interaction::kReadTopic), std::string(group));
}

}  // namespace

ReadEvents::ReadEvents(const config::Settings& settings, const Roles& roles) {
  const std::filesystem::path data = settings.text("data");
  std::filesystem::create_directories(data);
  if (roles.web)
    journal.emplace(queue::Journal::Options{
        .directory = data.string(), .size = settings.size("queue.journal"), .lanes = partitions(settings)});
  if (roles.web || roles.consumer) queue = open_queue(settings);
  if (roles.web)
    producer.emplace(*journal, *queue,
                     queue::Producer::Options{.acks = acks(settings), .prepare = make_known});
}

}  // namespace weir::site
