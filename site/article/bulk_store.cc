// The part of ArticleStore that writes many articles at once: seeding and import.
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "site/article/article_queries.h"
#include "site/article/article_store.h"
#include "weir/sql/placeholders.h"

namespace weir::site::article {
namespace {

using sql::Session;
using Known = std::unordered_map<std::string, Id>;  // by external id

// Those that are there.
Known find_external(Session& session, std::vector<sql::Value> external_ids) {
  Known known;
  if (external_ids.empty()) return known;
  const sql::Query query{"article", "find_external",
                         queries::kFindExternal + sql::placeholders(external_ids.size()) + ")"};
  session.each_of(query, external_ids,
                  [&](const sql::Row& row) { known.emplace(row.get<std::string>(0), row.get<Id>(1)); });
  return known;
}

Id insert(Session& session, const ImportedArticle& article, const std::string& abstract) {
  const std::optional<std::string> external_id =
      article.external_id.empty() ? std::nullopt : std::optional(article.external_id);
  const Id id = session
                    .execute(queries::kInsert, article.author_id, article.title, abstract,
                             static_cast<int>(Status::published), 1, article.published_at,
                             article.published_at, external_id, article.content)
                    .last_id;
  session.execute(queries::kCopyToReaders, id);
  return id;
}

// Another import may have been faster, or the batch holds it twice.
Imported insert_or_find(Session& session, const ImportedArticle& article, const std::string& abstract) {
  try {
    return {insert(session, article, abstract), true};
  } catch (const sql::Error& error) {
    if (error.kind() != sql::ErrorKind::unique_violation) throw;
  }
  return {find_external(session, {article.external_id}).at(article.external_id), false};
}

std::vector<Imported> insert_all(Session& session, std::span<const ImportedArticle> articles,
                                 std::span<const std::string> abstracts, const Known& known) {
  enter_gate(session);
  std::vector<Imported> result;
  result.reserve(articles.size());
  std::map<Id, std::int64_t> by_author;
  for (std::size_t i = 0; i < articles.size(); ++i) {
    const ImportedArticle& article = articles[i];
    const auto found = known.find(article.external_id);
    result.push_back(found != known.end() ? Imported{found->second, false}
                                          : insert_or_find(session, article, abstracts[i]));
    if (result.back().inserted) ++by_author[article.author_id];
  }
  std::int64_t inserted = 0;
  for (const auto& [author, count] : by_author) {
    session.execute(queries::kCountUp, queries::kOwnList, author, count);
    inserted += count;
  }
  if (inserted > 0) session.execute(queries::kCountUp, queries::kPublishedList, 0, inserted);
  return result;
}

}  // namespace

std::vector<Imported> ArticleStore::insert_published_now(std::span<const ImportedArticle> articles) {
  // Beforehand: on SQLite every other write waits while this one has the writer's thread, and on MySQL a row that is
  // refused uses up an id, of which repeated imports would leave long gaps.
  std::vector<std::string> abstracts;
  abstracts.reserve(articles.size());
  std::vector<sql::Value> external_ids;
  for (const ImportedArticle& article : articles) {
    abstracts.push_back(abstract_of(article.content));
    if (!article.external_id.empty()) external_ids.emplace_back(article.external_id);
  }
  const Known known =
      database_.read_now([&](Session& session) { return find_external(session, external_ids); });
  return database_.write_now(
      [&](Session& session) { return insert_all(session, articles, abstracts, known); });
}

}  // namespace weir::site::article
