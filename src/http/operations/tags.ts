/** The tags of a garden, with their numbers of plants. */
import { codePointsMax } from "../../domain/plant.ts";
import { closed, type DescribeSchemas, integer, refer, text } from "../json-schema.ts";
import { plantOperation } from "../operation.ts";
import { inQuery, limit, tagText } from "../parameters.ts";
import { jsonReply, linkHeader, linkToNext } from "../reply.ts";

export const schemas: DescribeSchemas = () => ({
  TagCount: closed({
    tag: text("Empty for plants without a tag.", { maxLength: codePointsMax.tag }),
    plants: integer("int64", "How many plants have the tag.", { minimum: 1 }),
  }),
  TagCountList: { type: "array", items: refer("schemas", "TagCount") },
});

export const listTags = plantOperation({
  name: "listTags",
  method: "GET",
  path: "/tags",
  scope: "read",
  summary: "Count plants by tag",
  description:
    "The tags of the garden's plants in code point order, each with the number of its plants. " +
    "Plants without a tag are counted under the empty one. With a `limit` of up to 1,000, `Link` has " +
    "the next page. Otherwise the tags are streamed.",
  parameters: {
    limit,
    after: inQuery(tagText, "A tag. The list starts after it.", "hall"),
  },
  success: {
    description: "The tags.",
    headers: linkHeader('</tags?limit=20&after=shade>; rel="next"'),
    schema: "TagCountList",
    example: [
      { tag: "", plants: 12 },
      { tag: "shade", plants: 1668 },
    ],
  },
  isCacheable: true,
  async run({ service, caller }, { parameters }) {
    const { limit, after } = parameters;
    const scan = service.plants.tags(caller, after);
    const { body, next } = await service.lists.read(caller.garden, scan, limit, (tag) => tag);
    return jsonReply(
      200,
      body,
      next && { Link: linkToNext(`${service.basePath}/tags`, { ...next }) },
    );
  },
});
